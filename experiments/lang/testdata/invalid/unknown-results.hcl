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

check "a" {
  condition = result.bulk.goodput > 0 && result.bulc.goodput_bps > 0
}

check "b" {
  condition = result.net.botleneck.utilization_ratio > 0 && result.net.bottleneck.utilisation_ratio > 0 && result.net.bottleneck.reverse.nothing > 0
}

check "c" {
  condition = min(result.bulk.flows[*].goodputs_bps) > 0
}

claim "d" {
  value     = median(result.bulk.goodput_bps / result.reno.goodput_bps)
  condition = value > 0
}
