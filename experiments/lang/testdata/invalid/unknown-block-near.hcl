experiment "x" {
  duration = "10s"
}

worklaod "tcp" "a" {}

variables {}
