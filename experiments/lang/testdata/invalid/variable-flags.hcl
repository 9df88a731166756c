# flags: --var flow=1 --var flows=many --var list=[1,x]
experiment "x" {
  duration = "10s"
}

variable "flows" {
  default = 1
}

variable "list" {
  type    = list(number)
  default = []
}
