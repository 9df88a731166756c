experiment "x" {
  duration = "10s"
}

node "a" {}
node "b" {}
link "l" {
  between   = ["a", "b"]
  rate      = "1mbit"
  emulation = "kernel"
}
link "m" {
  between   = ["a", "b"]
  rate      = "1mbit"
  emulation = "sofware"
}
