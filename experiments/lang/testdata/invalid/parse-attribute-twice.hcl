experiment "x" {
  duration = "10s"
  duration = "20s"
}
