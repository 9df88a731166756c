experiment "x" {
  duration = "10s"
}

topology "dumbbell" "net" {}

node "extra" {}

link "l" {
  between = ["extra", "router_lefd"]
}

workload "tcp" "t" {
  from = "left1"
  to   = "rigth1"
}
