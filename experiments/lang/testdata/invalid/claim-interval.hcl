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

claim "a" {
  value     = median(result.bulk.goodput_bps, true, true)
  condition = value > 0
  interval  = "nome"
  requires  = 4
}
