experiment "x" {
  duration = "10s"
}

sweep {
  a = [0, 1, 2]
  b = ["x", "y"]
}

topology "dumbbell" "net" {
  bottleneck {
    rate = "100mbit"
    rtt  = "40ms"
  }
}

workload "tcp" "bulk" {
  from = "left1"
  to    = "right${sweep.a}"
  flows = sweep.b == "x" ? 1 : 0
}
