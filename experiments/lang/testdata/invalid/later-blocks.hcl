experiment "x" {
  duration = "10s"
}

topology "dumbbell" "net" {
  bottleneck {
    rate = "100mbit"
    rtt  = "40ms"
  }
}

workload "tcp" "bulk" {
  from = "left1"
  to   = "right1"
}

fidelity "f" {}

node "a" {}
link "l" {
  between = ["a", "left1"]
  schedule {
    at = "1s"
  }
}
