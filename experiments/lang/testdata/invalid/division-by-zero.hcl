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

locals {
  a = 1 / 0
}
