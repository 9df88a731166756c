# Short transfers arriving at random over a shared bottleneck: open-loop load.
#
# Poisson arrivals with Pareto sizes, as in studies of flow completion time; the
# load does not wait for the network, so slowdown grows as it nears capacity.
experiment "web-like" {
  title       = "How much longer do short transfers take as the load grows?"
  duration    = "30s"
  warmup      = "3s"
  repetitions = 6
  seed        = 1

  smoke {
    duration    = "3s"
    warmup      = "500ms"
    repetitions = 1
    sweep       = { load = ["30%"] }
  }
}

sweep {
  load = ["30%", "60%", "80%"] # of the bottleneck's capacity
}

locals {
  rate = "50mbit"
  rtt  = "20ms"
}

topology "dumbbell" "net" {
  bottleneck {
    rate = local.rate
    rtt  = local.rtt
  }
}

workload "tcp" "web" {
  from       = "left1"
  to         = "right1"
  congestion = "cubic"

  arrivals {
    process  = "poisson"
    load     = sweep.load
    capacity = local.rate

    sizes {
      distribution = "pareto"
      mean         = "50KiB"
      shape        = 1.3
    }
  }
}

check "transfers complete" {
  condition     = result.web.completed_count > 0
  error_message = "No transfer completed in the measurement window."
}

figure "fct" {
  title = "Flow completion time"
  kind  = "line"
  x     = "load"
  y     = ["web.fct_p50_s", "web.fct_p99_s"]
}
