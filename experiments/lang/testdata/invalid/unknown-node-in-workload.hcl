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
  to   = "rigth1"
}

instrument "perf" "p" {
  events = ["x"]
  link   = "net.botleneck"
}
