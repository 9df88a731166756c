experiment "x" {
  duration = "0s"
}
