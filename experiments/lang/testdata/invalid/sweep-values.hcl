experiment "x" {
  duration = "10s"
}

sweep {
  a = []
  b = 3
  c = [1, 2, 1]
  d = [[1]]
  e = [1, null]
  f = sweep.a
}
