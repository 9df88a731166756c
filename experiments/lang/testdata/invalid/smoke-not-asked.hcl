experiment "x" {
  duration = "1s"
  smoke {
    warmup = 1
  }
}
