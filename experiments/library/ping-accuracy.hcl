# Is the emulated delay what was asked, at idle and beside bulk TCP?
#
# One ping at ten per second over a link of 10 ms each way; with load, the
# queue may add at most its own length.
experiment "ping-accuracy" {
  title       = "How close is the round-trip time to the 20 ms that the file asks for?"
  duration    = "10s"
  warmup      = "1s"
  repetitions = 6
  seed        = 1

  smoke {
    duration    = "2s"
    warmup      = "500ms"
    repetitions = 1
  }
}

sweep {
  load = [false, true]
}

locals {
  rate = "100mbit"
}

node "a" {}
node "b" {}

link "path" {
  between = ["a", "b"]
  rate    = local.rate
  delay   = "10ms"
  queue   = "10ms"
}

workload "ping" "probe" {
  from     = "a"
  to       = "b"
  interval = "20ms"
}

dynamic "workload" {
  for_each = sweep.load ? ["bulk"] : []
  labels   = ["tcp", workload.value]

  content {
    from       = "a"
    to         = "b"
    congestion = "cubic"
  }
}

check "the delay is what was asked" {
  condition     = result.probe.rtt_min_s >= 0.020 && (sweep.load || result.probe.rtt_min_s < 0.0206)
  error_message = "The shortest RTT was ${format("%.3f", result.probe.rtt_min_s * 1000)} ms, asked 20 ms."
}

check "the queue adds no more than its length" {
  condition     = result.probe.rtt_p99_s <= 0.020 + 0.010 + 0.001
  error_message = "The 99th percentile was ${format("%.3f", result.probe.rtt_p99_s * 1000)} ms."
}

claim "an idle link keeps its delay within 0.3 ms" {
  value     = median(result.probe.rtt_p50_s, !sweep.load)
  condition = value >= 0.020 && value <= 0.0203
}

figure "rtt" {
  title = "Round-trip time of the probe"
  kind  = "time"
  y     = ["probe.rtt_s"]
}
