experiment "x" {
  duration  = "1s"
  emulation = "kernel"
}
