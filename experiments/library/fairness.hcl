# Do flows of one kind share a bottleneck fairly, whatever their number?
#
# Jain's index over the flows of one congestion control, for two to eight flows
# and three controls (RFC 5166, section 2.3).
experiment "fairness" {
  title       = "How fairly do flows of one congestion control share 50 Mbit/s?"
  duration    = "20s"
  warmup      = "5s"
  repetitions = 6
  seed        = 1

  smoke {
    duration    = "2s"
    warmup      = "1s"
    repetitions = 1
    sweep       = { flows = [2, 4], congestion = ["cubic"] }
  }
}

sweep {
  congestion = ["cubic", "reno"]
  flows      = [2, 4, 8]
}

topology "dumbbell" "net" {
  bottleneck {
    rate  = "50mbit"
    rtt   = "20ms"
    queue = bdp("50mbit", "20ms", 1)
  }
}

workload "tcp" "bulk" {
  from       = "left1"
  to         = "right1"
  flows      = sweep.flows
  congestion = sweep.congestion
}

check "every flow moves" {
  condition     = min(result.bulk.flows[*].goodput_bps...) > 0
  error_message = "A flow delivered nothing in the measurement window."
}

claim "two CUBIC flows share fairly" {
  value     = median(jain(result.bulk.flows[*].goodput_bps), sweep.flows == 2 && sweep.congestion == "cubic")
  condition = value >= 0.8
}

figure "fairness" {
  title = "Jain's fairness index"
  kind  = "line"
  x     = "flows"
  y     = ["bulk.fairness_ratio"]
  by    = "congestion"
}
