experiment "x" {
  duration = "10s"
}

node "a" {}

link "l" {
  between = ["a", "a"]
}
