experiment "x" {
  duration = "10s"
}

sweep {
  a = [1]
}

sweep {
  b = [1]
}
