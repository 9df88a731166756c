experiment "x" {
  duration = "10s"
}

node "a" {}
node "b" {}
node "a" {}

link "l" {
  between = ["a", "b"]
}
link "l" {
  between = ["a", "b"]
}
