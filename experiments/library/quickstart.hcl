# CUBIC beside Reno on one bottleneck, with a short and a full buffer.
#
# The first experiment to run: a dumbbell of 100 Mbit/s and 40 ms, one flow of
# each congestion control, a buffer of half and of one bandwidth-delay product.
experiment "quickstart" {
  title       = "Does CUBIC leave Reno its share of a 100 Mbit/s bottleneck?"
  duration    = "4s"
  warmup      = "1s"
  repetitions = 3
  seed        = 1

  smoke {
    duration    = "2s"
    warmup      = "500ms"
    repetitions = 1
  }
}

locals {
  rate = "100mbit"
  rtt  = "40ms"
}

sweep {
  buffer = [0.5, 1] # in BDP
}

topology "dumbbell" "net" {
  hosts = 2

  bottleneck {
    rate  = local.rate
    rtt   = local.rtt
    queue = bdp(local.rate, local.rtt, sweep.buffer)
  }
}

workload "tcp" "cubic" {
  from       = "left1"
  to         = "right1"
  congestion = "cubic"
}

workload "tcp" "reno" {
  from       = "left2"
  to         = "right2"
  congestion = "reno"
}

check "every drop is the queue's" {
  condition     = result.net.bottleneck.loss_drops_count == 0
  error_message = "The loss stage dropped packets that nobody asked it to drop."
}

check "the bottleneck is busy" {
  condition     = result.net.bottleneck.utilization_ratio >= 0.7
  error_message = "Utilization was ${format("%.2f", result.net.bottleneck.utilization_ratio)}."
}

figure "goodput" {
  title = "Goodput of both flows against the buffer"
  kind  = "line"
  x     = "buffer"
  y     = ["cubic.goodput_bps", "reno.goodput_bps"]
}

figure "delay" {
  title = "Smoothed RTT over time"
  kind  = "time"
  y     = ["cubic.rtt_s", "reno.rtt_s"]
}
