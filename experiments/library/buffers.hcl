# How large a buffer do CUBIC and Reno need to share a bottleneck?
#
# Sixteen flows, half of each kind, against five buffer sizes around the
# bandwidth-delay product; the claim is that a buffer of one BDP does not let
# CUBIC starve Reno.
experiment "buffers" {
  title       = "How large must the buffer be for CUBIC and Reno to share a bottleneck?"
  duration    = "30s"
  warmup      = "5s"
  repetitions = 6
  seed        = 1

  smoke {
    duration    = "2s"
    warmup      = "1s"
    repetitions = 1
    sweep       = { buffer = [0.5, 1] }
  }
}

variable "flows" {
  description = "Flows in all, half of each congestion control."
  type        = number
  default     = 16

  validation {
    condition     = var.flows >= 2 && var.flows % 2 == 0
    error_message = "flows must be even and at least 2."
  }
}

locals {
  rate = "100mbit"
  rtt  = "40ms"
}

sweep {
  buffer = [0.25, 0.5, 1, 2, 4] # in BDP
}

topology "dumbbell" "net" {
  hosts = 2

  bottleneck {
    rate  = local.rate
    rtt   = local.rtt
    queue = bdp(local.rate, local.rtt, sweep.buffer)
    aqm   = "droptail"
  }
}

workload "tcp" "cubic" {
  from       = "left1"
  to         = "right1"
  flows      = var.flows / 2
  congestion = "cubic"
}

workload "tcp" "reno" {
  from       = "left2"
  to         = "right2"
  flows      = var.flows / 2
  congestion = "reno"
}

check "the bottleneck is busy" {
  condition     = result.net.bottleneck.utilization_ratio >= 0.9
  error_message = "Utilization was ${format("%.2f", result.net.bottleneck.utilization_ratio)}."
}

claim "reno is not starved at one BDP" {
  value     = median(result.reno.goodput_bps / result.cubic.goodput_bps, sweep.buffer == 1)
  condition = value >= 0.5
  published = null
}

figure "share" {
  title = "Goodput of eight CUBIC and eight Reno flows"
  kind  = "line"
  x     = "buffer"
  y     = ["cubic.goodput_bps", "reno.goodput_bps"]
}

figure "drops" {
  title = "Packets that the full queue dropped"
  kind  = "line"
  x     = "buffer"
  y     = ["net.bottleneck.queue_drops_count"]
}
