experiment "x" {
  duration = "10s"
}

link "l" {
  between = ["a", "b"]
  forward = { rate = "1mbit" }
  rate { }
}
