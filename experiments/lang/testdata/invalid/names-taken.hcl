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

workload "tcp" "net" {
  from = "left1"
  to   = "right1"
}

instrument "perf" "bulk" {
  events = []
}

node "left1" {}

check "a" {
  condition = true
}

check "a" {
  condition = true
}
