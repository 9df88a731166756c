experiment "x" {
  duration = "10s"
}

rate = "1mbit"

sweep = { a = [1] }
