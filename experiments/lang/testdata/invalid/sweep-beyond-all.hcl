# flags: --yes
experiment "x" {
  duration = "10s"
}

sweep {
  a = range(1000)
  b = range(1000)
  c = range(1000)
  d = range(1000)
  e = range(1000)
  f = range(1000)
  g = range(1000)
  h = range(1000)
}
