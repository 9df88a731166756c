experiment "x" {
  duration = "10s"
}

link "l" {
  between = ["a", "b"]
  rate    = 100mbit
}
