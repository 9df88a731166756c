experiment "x" {
  duraton = "10s"
}
