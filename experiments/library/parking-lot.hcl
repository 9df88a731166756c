# A long flow across three bottlenecks, one short flow on each.
#
# The parking-lot topology of RFC 5166, section 2.3: how much does the long flow
# get, compared with the short ones that cross a single bottleneck?
experiment "parking-lot" {
  title       = "What is left for a flow that crosses three bottlenecks?"
  duration    = "20s"
  warmup      = "5s"
  repetitions = 6
  seed        = 1

  smoke {
    duration    = "2s"
    warmup      = "1s"
    repetitions = 1
    sweep       = { congestion = ["cubic"] }
  }
}

sweep {
  congestion = ["cubic", "reno"]
}

topology "parking-lot" "net" {
  hops = 3

  bottleneck {
    rate  = "30mbit"
    rtt   = "10ms"
    queue = bdp("30mbit", "30ms", 1)
  }
}

workload "tcp" "long" {
  from       = "long_source"
  to         = "long_sink"
  congestion = sweep.congestion
}

workload "tcp" "short1" {
  from       = "source1"
  to         = "sink1"
  congestion = sweep.congestion
}

workload "tcp" "short2" {
  from       = "source2"
  to         = "sink2"
  congestion = sweep.congestion
}

workload "tcp" "short3" {
  from       = "source3"
  to         = "sink3"
  congestion = sweep.congestion
}

check "the long flow is not starved" {
  condition     = result.long.goodput_bps > 100000
  error_message = "It got ${format("%.0f", result.long.goodput_bps)} bit/s."
}

claim "the long flow gets less than a short one" {
  value     = median(ratio(result.long.goodput_bps, result.short2.goodput_bps))
  condition = value < 1
}

figure "shares" {
  title = "Goodput of the long flow and of the short ones"
  kind  = "line"
  x     = "congestion"
  y     = ["long.goodput_bps", "short1.goodput_bps", "short2.goodput_bps", "short3.goodput_bps"]
}
