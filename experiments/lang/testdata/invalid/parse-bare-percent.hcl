experiment "x" {
  duration = "10s"
}

link "l" {
  between = ["a", "b"]
  loss    = 1%
}
