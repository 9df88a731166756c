experiment "x" {
  duration = "10s"
}

topology "dumbbell" "net" {
  bottleneck {
    rate = 100
    rtt  = "40"
  }
}

workload "tcp" "bulk" {
  from = "left1"
  to   = "right1"
}

node "n" {}
link "k" {
  between = ["n", "left1"]
  rate    = "100mbps"
  queue   = 50
  loss    = 0.02
  jitter  = "3 parsecs"
}
