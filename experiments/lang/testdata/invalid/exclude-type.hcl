experiment "x" {
  duration = "10s"
}

sweep {
  a = [1, 2]
}

exclude {
  when = sweep.a
}

exclude {
  wen = true
}
