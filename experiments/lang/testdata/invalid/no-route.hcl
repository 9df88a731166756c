experiment "x" {
  duration = "10s"
}

node "a" {}
node "b" {}
node "c" {}

link "ab" {
  between = ["a", "b"]
}
link "bc" {
  between = ["b", "c"]
}

workload "tcp" "t" {
  from = "a"
  to   = "c"
}
