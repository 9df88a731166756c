# flags: --only a=3
experiment "x" {
  duration = "10s"
}

sweep {
  a = [1, 2]
}
