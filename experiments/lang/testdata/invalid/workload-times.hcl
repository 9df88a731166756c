experiment "x" {
  duration = "10s"
}

topology "dumbbell" "net" {
  bottleneck {
    rate = "100mbit"
    rtt  = "40ms"
  }
}

workload "tcp" "bulk" {
  from = "left1"
  to   = "right1"
}

workload "tcp" "a" {
  from  = "left1"
  to    = "right1"
  start = "3s"
  stop  = "2s"
}

workload "tcp" "b" {
  from  = "left1"
  to    = "right1"
  start = "1m"
}

workload "tcp" "c" {
  from  = "left1"
  to    = "right1"
  after = "d"
}

workload "tcp" "d" {
  from  = "left1"
  to    = "right1"
  after = "c"
  start = "1s"
}

workload "tcp" "e" {
  from  = "left1"
  to    = "right1"
  after = "bullk"
  cores = [0, 4]
}
