experiment "x" {
  duration  = "1s"
  substrate = "virtual"
}
