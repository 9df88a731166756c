experiment "x" {
  duration = "10s"
}

topology "dumbbell" "net" {
  bottleneck {
    rat  = "100mbit"
    rtt  = "40ms"
  }
}

workload "tcp" "bulk" {
  from = "left1"
  to   = "right1"
}

check "c" {
  condition = true
  messsage  = "no"
}
