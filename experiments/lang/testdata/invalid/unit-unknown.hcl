experiment "x" {
  duration = "10s"
}

topology "dumbbell" "net" {
  bottleneck {
    rate = "100mbt"
    rtt  = "40 moments"
  }
}

workload "tcp" "bulk" {
  from = "left1"
  to   = "right1"
}
