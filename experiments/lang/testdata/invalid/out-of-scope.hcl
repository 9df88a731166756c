experiment "x" {
  title    = "at ${sweep.a}"
  duration = "${run.seed}s"
}

locals {
  b    = sweep.a
  late = result.bulk.goodput_bps
}

sweep {
  a = [local.b]
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
  flows = result.bulk.goodput_bps

}

check "c" {
  condition = value > 1
}

claim "d" {
  value     = result.bulk.goodput_bps
  condition = sweep.a > 0
}

claim "e" {
  condition = value > 0
}

figure "f" {
  title = "seed ${run.seed}"
  y     = ["bulk.goodput_bps"]
}
