experiment "x" {
  duration = "10s"
}

node "a" {}
node "b" {}
link "l" {
  between = ["a", "b"]
  rate    = trace("lte.txt")
}
