experiment "x" {
  duration    = "1s"
  repetitions = 0
  seed        = -1
}
