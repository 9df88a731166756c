experiment "x" {
  duration = "10s"
}

sweep {
  a = range(100)
  b = range(100)
  c = range(100)
}
