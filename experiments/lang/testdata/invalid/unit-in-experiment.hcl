experiment "x" {
  duration = 10
  warmup   = true
}
