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

figure "a" {
  x = "buffer"
  y = ["bulk.goodput", "bulc.goodput_bps", "bulk"]
}

figure "b" {
  kind = "pie"
  y    = []
}

figure "c" {
  kind = "time"
  y    = ["bullk.rtt_s"]
}
