experiment "x" {
  duration = "10s"
}

topology "dumbbell" "net" {
  bottleneck {
    rate = "400gbit"
    rtt  = "40ms"
  }
}

workload "tcp" "bulk" {
  from = "left1"
  to   = "right1"
}

node "n" {}
link "k" {
  between = ["n", "router_left"]
  forward {
    rate = "50gbit"
    aqm  = "codel"
  }
}
