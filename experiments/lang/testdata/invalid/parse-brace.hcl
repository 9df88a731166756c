experiment "x" {
  duration = "10s"
