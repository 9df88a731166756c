experiment "x" {
  duration = "10s"
}

foo "a" {}
