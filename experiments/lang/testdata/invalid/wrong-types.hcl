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
  to    = ["right1"]
  flows = "many"
}

workload "tcp" "half" {
  from  = "left1"
  to    = "right1"
  flows = 1.5
  cores = [0, "a"]
}

workload "tcp" "none" {
  from  = "left1"
  to    = "right1"
  flows = 0
  start = "-1s"
  cores = 3
}

check "number" {
  condition     = result.half.goodput_bps
  error_message = result.half
}

claim "text" {
  value     = "a lot"
  condition = median(result.half) > 0
}

claim "number" {
  condition = median(result.half.goodput_bps, result.half.goodput_bps)
}
