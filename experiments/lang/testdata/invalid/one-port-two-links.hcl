experiment "x" {
  duration = "10s"
}

node "r" {
  kind = "router"
}
node "a" {}
node "b" {}

link "one" {
  between = ["a", "r:left"]
}
link "two" {
  between = ["b", "r:left"]
}
