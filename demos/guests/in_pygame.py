"""perframe in a window of pygame. `python demos/guests/in_pygame.py`."""

import pygame
from painting import Painting

import perframe as pf
from perframe.host import KeyEvent

pygame.init()
pygame.display.gl_set_attribute(pygame.GL_CONTEXT_MAJOR_VERSION, 3)
pygame.display.gl_set_attribute(pygame.GL_CONTEXT_MINOR_VERSION, 3)
pygame.display.gl_set_attribute(pygame.GL_CONTEXT_PROFILE_MASK, pygame.GL_CONTEXT_PROFILE_CORE)
pygame.display.set_mode((640, 360), pygame.OPENGL | pygame.DOUBLEBUF | pygame.RESIZABLE)
pygame.display.set_caption("perframe in pygame: hold a key")
clock, is_open = pygame.time.Clock(), True
app = pf.attach(Painting())

while is_open:
    for event in pygame.event.get():
        if event.type == pygame.QUIT:
            is_open = False
        elif event.type == pygame.VIDEORESIZE:
            app.ctx.viewport = (0, 0, event.w, event.h)  # pygame leaves the viewport as it was
        elif event.type in (pygame.KEYDOWN, pygame.KEYUP):
            app.post(KeyEvent(pygame.key.name(event.key), event.type == pygame.KEYDOWN))
    app.loop_once()
    pygame.display.flip()
    clock.tick(60)

app.release()
pygame.quit()
