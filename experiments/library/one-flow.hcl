# One CUBIC flow alone on a bottleneck: does the emulated link behave by the book?
#
# A queue of one bandwidth-delay product keeps the link full; a queue of 100
# packets adds at most its own 12.1 ms. What the arithmetic says is the claim.
experiment "one-flow" {
  title       = "Does one CUBIC flow get what 100 Mbit/s and a drop-tail queue allow?"
  duration    = "8s"
  warmup      = "3s"
  repetitions = 6
  seed        = 1

  smoke {
    duration    = "2s"
    warmup      = "1s"
    repetitions = 1
  }
}

locals {
  rate = "100mbit"
  rtt  = { bdp = "40ms", packets = "20ms" }
  size = { bdp = bdp("100mbit", "40ms", 1), packets = "100pkt" }
}

sweep {
  queue = ["bdp", "packets"]
}

node "a" {}
node "b" {}

link "path" {
  between = ["a", "b"]
  rate    = local.rate
  rtt     = local.rtt[sweep.queue]
  queue   = local.size[sweep.queue]
}

workload "tcp" "bulk" {
  from       = "a"
  to         = "b"
  congestion = "cubic"
}

check "every drop is the queue's" {
  condition     = result.net.path.loss_drops_count == 0 && result.net.path.overload_drops_count == 0
  error_message = "Packets were lost that the queue did not drop."
}

claim "goodput reaches 0.97 of payload over wire bytes at one BDP" {
  value     = median(result.bulk.goodput_bps / (rate(local.rate) * 1448 / 1514), sweep.queue == "bdp")
  condition = value >= 0.97
}

claim "the 99th percentile of the RTT is base plus queue over rate at one BDP, within 5 %" {
  value     = median(result.bulk.rtt_p99_s / 0.080, sweep.queue == "bdp")
  condition = value >= 0.95 && value <= 1.05
}

claim "100 packets add no more than 12.1 ms to 20 ms, within the stated 1 ms" {
  value     = max(result.bulk.rtt_p99_s, sweep.queue == "packets")
  condition = value <= 0.0331
}

figure "rtt" {
  title = "Smoothed RTT over time"
  kind  = "time"
  y     = ["bulk.rtt_s"]
}
