experiment "x" {
  duration = "10s"
}

node "a" {
  kind = "ruter"
}
