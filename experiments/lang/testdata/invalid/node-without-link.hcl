experiment "x" {
  duration = "10s"
}

node "a" {}
node "b" {}
node "c" {}

link "ab" {
  between = ["a", "b"]
}
