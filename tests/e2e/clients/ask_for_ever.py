"""ask_for_ever.py PORT...: reads keys through each proxy again and again, whatever it answers."""
import sys
import time

import redis

clients = [redis.Redis(port=int(port), socket_timeout=10) for port in sys.argv[1:]]
number = 0
while True:
    for client in clients:
        number += 1
        try:
            client.get(f"fill:{number * 997 % 2000}")
        except redis.RedisError:
            pass
    time.sleep(0.002)
