experiment "x" {
  duration = "10s"
}

experiment "y" {
  duration = "1s"
}
